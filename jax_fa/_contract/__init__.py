"""What a call is, apart from how it runs: static options, shape rules, tolerances."""
