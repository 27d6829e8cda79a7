"""Extremes: the slowest of N calls, and the coverage of predictions of it.

`maximum.predict_slowest` is the entry point; `order_statistics.compute_equation1` is Equation 1 of the paper,
`backtest.run_backtest` measures the coverage of predictions.
"""
