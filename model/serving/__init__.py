"""The model as an HTTP service, on Inception's and OpenAI's wire."""
