"""From an allow-list of package releases to training rows: texts, gaps to fill and edit cases, one command.

`redraft data build --out DIR` does everything and is resumable. The package knows nothing of models or tokens;
`model.training.pack` turns its rows into tokens.

| module | is responsible for |
| --- | --- |
| `allowlist` | whose releases may be used, and which file each release was |
| `pypi`, `npm` | fetching releases from a registry and reading their members |
| `filters` | which files are not worth learning from, or must not be learnt |
| `sources` | the texts of one release that pass the filters |
| `syntax` | the syntax nodes of a text |
| `fim` | gaps in a text |
| `changes`, `examples` | the steps from one text to the next, and the cases on the way |
| `dedupe` | near duplicates and overlap with test data |
| `parts` | the rows of one package |
| `selection` | the ratio of the kinds of cases |
| `build`, `manifest` | all packages together with the command, and what was written |
| `jsonl` | files of rows |
"""
