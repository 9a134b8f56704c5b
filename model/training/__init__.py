"""Everything that made the embedded model, one command each. Needs the `training` extra; never
imported at run time."""
