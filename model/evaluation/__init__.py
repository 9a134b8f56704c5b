"""Measures predictors: the headless case contract, metrics, benchmarks, speed."""
