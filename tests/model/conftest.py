"""Being here lets tests in the folders below import `tiny`."""
