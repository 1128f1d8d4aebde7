"""The instances of the race, each regenerated from its name."""

from benchopt import BaseDataset

from seraph_cvx.race.suite import InstanceSpec, suite


class Dataset(BaseDataset):
    """An M-step, such as wine-n40-standard-hyper-w1-s0; any name of that form will do."""

    name = "suite"
    parameters = {"instance": [spec.name for spec in suite("small")]}  # noqa: RUF012
    requirements = ["pip::seraph-cvx"]  # noqa: RUF012

    def get_data(self):
        return {"spec": InstanceSpec.parse(self.instance)}
