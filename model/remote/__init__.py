"""Predictions by a service that is reached over HTTP: what is asked, how, and what becomes of the answer."""
