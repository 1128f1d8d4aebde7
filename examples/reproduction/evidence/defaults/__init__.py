"""How good the defaults are: methods on data sets that the paper does not use, with tests."""
