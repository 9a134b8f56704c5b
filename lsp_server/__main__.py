"""`python -m lsp_server` is `redraft`."""

from lsp_server.cli import main

if __name__ == "__main__":
    main()
