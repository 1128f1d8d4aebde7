"""The runs of Section 5: methods on samplings, in parallel and resumable."""
