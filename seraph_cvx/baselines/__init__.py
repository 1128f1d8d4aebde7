"""The paper's rivals, each from its own publication."""
