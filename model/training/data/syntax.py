"""Where the syntax nodes of a text are, by tree-sitter.

Responsible for the language of a path, for the queries that name the parts of a program worth completing, and for
turning the parser's byte offsets into code points. It knows nothing of gaps, packages or models.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_typescript
from tree_sitter import Language, Parser, Query, QueryCursor

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
}
GRAMMARS = {
    "python": tree_sitter_python.language,
    "javascript": tree_sitter_javascript.language,
    "typescript": tree_sitter_typescript.language_typescript,
    "typescriptreact": tree_sitter_typescript.language_tsx,
}
PYTHON = """
(argument_list) @argument_list
(parameters) @parameters
(block) @block
(string_content) @string
[(list) (dictionary) (set) (tuple)] @collection
(assignment right: (_) @expression)
(return_statement (_) @expression)
(keyword_argument value: (_) @expression)
(if_statement condition: (_) @condition)
(while_statement condition: (_) @condition)
(type) @type
(function_definition) @function
(block (_) @statement)
(module (_) @statement)
(comment) @comment
"""
JAVASCRIPT = """
(arguments) @argument_list
(formal_parameters) @parameters
(statement_block) @block
[(string_fragment) (template_string)] @string
[(array) (object) (object_pattern) (named_imports)] @collection
(variable_declarator value: (_) @expression)
(assignment_expression right: (_) @expression)
(return_statement (_) @expression)
(pair value: (_) @expression)
(if_statement condition: (_) @condition)
(while_statement condition: (_) @condition)
[(function_declaration) (method_definition) (arrow_function)] @function
(statement_block (_) @statement)
(program (_) @statement)
(comment) @comment
"""
TYPESCRIPT = """
(type_annotation (_) @type)
(type_arguments) @type
(type_alias_declaration value: (_) @type)
(interface_body) @block
"""
QUERIES = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT + TYPESCRIPT,
    "typescriptreact": JAVASCRIPT + TYPESCRIPT,
}

Span = tuple[int, int]


def language_of(path: str) -> str:
    """The LSP language id of a source file, by its name; empty when it is not one that is learnt."""
    name = path.rpartition("/")[2]
    return LANGUAGES.get(name[name.rfind(".") :], "") if "." in name else ""


@lru_cache
def _tools(language: str) -> tuple[Parser, Query]:
    grammar = Language(GRAMMARS[language]())
    return Parser(grammar), Query(grammar, QUERIES[language])


def node_spans(text: str, language: str) -> dict[str, list[Span]]:
    """Kind of node -> (start, end) of each, in code points, by place; whole nodes with their brackets.

    KeyError for a language that is not in `GRAMMARS`.
    """
    parser, query = _tools(language)
    encoded = text.encode("utf-8", "replace")
    found = QueryCursor(query).captures(parser.parse(encoded).root_node)
    spans = {
        kind: sorted({(node.start_byte, node.end_byte) for node in nodes})
        for kind, nodes in sorted(found.items())
    }
    if len(encoded) == len(text):
        return spans
    begins = (np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80
    points = np.concatenate(([0], np.cumsum(begins))).tolist()
    return {
        kind: [(points[start], points[end]) for start, end in some] for kind, some in spans.items()
    }
