"""What a release's file defines, without the release: taken out by syntax tree, with stand-ins for what it imports.

    scope = scope_of({"schedules.py": text, "_utils.py": text}, "schedules.py")
    scope["_Action"].from_str("0F0")

Imports of the standard library are made, those of the release's other files are looked for among the texts, and
whatever else is imported is a stand-in that answers everything with itself.
"""

import __future__

import ast
import hashlib
import importlib
import sys


class StandIn:
    """Answers whatever is asked of it with itself; as a base of a class it is none."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **_):
        """A decorator gives what it decorates back."""
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getitem__(self, _):
        return self

    def __or__(self, _):
        return self

    __ror__ = __or__

    def __mro_entries__(self, _):
        return ()

    def __instancecheck__(self, _):
        return False


def is_standard(module):
    return module.split(".")[0] in sys.stdlib_module_names


class WithoutImports(ast.NodeTransformer):
    """A name that a function imports is one of the file's."""

    def visit_Import(self, node):
        return ast.copy_location(ast.Pass(), node)

    visit_ImportFrom = visit_Import


class Extraction:
    """One file's definitions; what it takes from the release's other files is run first."""

    def __init__(self, texts, members):
        self.texts, self.members, self.scopes = texts, members, {}

    def scope(self, name):
        if name not in self.scopes:
            scope = self.scopes[name] = {"__name__": __name__}
            for node in ast.parse(self.texts[name]).body:
                self.run(node, name, scope)
        return self.scopes[name]

    def run(self, node, file, scope):
        if isinstance(node, (ast.If, ast.Try)):
            for inner in node.body:
                self.run(inner, file, scope)
            return
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                for alias in inner.names:
                    scope[alias.asname or alias.name.split(".")[0]] = self.imported(inner, alias)
        flags = __future__.annotations.compiler_flag if "annotations" in scope else 0
        exec(compile(ast.Module([WithoutImports().visit(node)], []), file, "exec", flags, dont_inherit=True), scope)

    def imported(self, node, alias):
        """What stands behind a name of an import."""
        module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        if isinstance(node, ast.Import):
            return importlib.import_module(module.split(".")[0]) if is_standard(module) else self.stand_in(alias.name)
        if not node.level and is_standard(module):
            return getattr(importlib.import_module(module), alias.name)
        file = f"{module.split('.')[-1]}.py"
        if file in self.texts and alias.name in self.scope(file):
            return self.scope(file)[alias.name]
        return self.stand_in(alias.name)

    def stand_in(self, name):
        return self.members.get(name, StandIn())


def scope_of(texts, name, members=None):
    """The names that a file defines; `members` are stand-ins of one's own, by the name that is imported."""
    return Extraction(texts, members or {}).scope(name)


def without_words(node):
    """The node's code without docstrings, in one layout."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(inner, clean=False) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    return ast.unparse(node)


def definitions(text):
    """By name, "Class.method" for a method: a digest of what a file defines, blind to comments, docstrings and layout."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    found[f"{node.name}.{inner.name}"] = inner
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
    return {name: hashlib.sha256(without_words(node).encode()).hexdigest()[:16] for name, node in found.items()}
