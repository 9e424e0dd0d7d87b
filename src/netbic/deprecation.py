"""Earlier names, which still work, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def earlier_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module that supports earlier names.

    Parameters
    ----------
    module : str
        The name of the module.
    names : dict
        From an earlier name to the current one, with its module.

    Examples
    --------
    >>> import warnings
    >>> find = earlier_names("here", {"Old": "collections.OrderedDict"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     find("Old").__name__, str(caught[0].message)
    ('OrderedDict', 'here.Old is called collections.OrderedDict now')
    """

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, current = names[name].rpartition(".")
        warnings.warn(f"{module}.{name} is called {names[name]} now", FutureWarning, stacklevel=2)
        return getattr(import_module(home), current)

    return __getattr__
