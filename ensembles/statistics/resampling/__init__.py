"""Bootstrap and dependence: how much the calls of one phase say."""
