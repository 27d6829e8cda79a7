"""What Bokeh would compute again for each object of a page: defaults of properties, and signatures.

For each property of each object that is not set, Bokeh collects the defaults that derived classes override,
copies the default and checks it, several times until the page is written. When it is imported, it describes
the signature of each of its classes, for documentation. Both take half of the time of a small report.
Here, plain and empty defaults are remembered by class, values that are not written are not computed, and
signatures are left out. Pages are the same.

This is for commands, which end with the page: in other programs Bokeh stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

_PLAIN = frozenset((type(None), bool, int, float, str))
"""Types of defaults that are remembered: values that cannot be changed."""

_CONTAINERS = frozenset((dict, list, set))
"""Types of defaults of which a new one is made for each object, without checks if it is empty."""


def remember_defaults() -> None:
    """Let Bokeh remember plain defaults in this process; of another version of Bokeh, perhaps less."""
    for change in (
        _remember_overridden,
        _remember_themed,
        _remember_unstable,
        _write_only_what_is_set,
        _remember_descriptions,
        _import_without_signatures,
    ):
        with suppress(ImportError, AttributeError):
            change()


def _remember_overridden() -> None:
    from bokeh.core.has_props import HasProps

    collect: Any = cache(vars(HasProps)["_overridden_defaults"].__func__)
    setattr(HasProps, "_overridden_defaults", classmethod(collect))  # noqa: B010


def _remember_themed() -> None:
    from bokeh.core.property.bases import Property

    compute = Property.themed_default
    known: dict[tuple[int, type, str], Any] = {}
    empty: dict[tuple[int, type, str], type] = {}
    missing = object()

    def themed_default(self: Any, cls: Any, name: str, theme_overrides: Any, *, no_eval: bool = False) -> Any:
        if theme_overrides:
            return compute(self, cls, name, theme_overrides, no_eval=no_eval)
        # Properties live as long as their classes, so that their identities stay.
        key = (id(self), cls, name)
        if key in empty:
            return empty[key]()
        found = known.get(key, missing)
        if found is missing:
            found = compute(self, cls, name, theme_overrides, no_eval=no_eval)
            default = cls._overridden_defaults().get(name, self._default)
            if type(default) in _PLAIN and type(found) in _PLAIN:
                known[key] = found
            elif type(default) in _CONTAINERS and not default and not found:
                empty[key] = type(found)
        return found

    setattr(Property, "themed_default", themed_default)  # noqa: B010


def _remember_unstable() -> None:
    """Remember which defaults of a class are made anew for each object."""
    from bokeh.core.has_props import HasProps
    from bokeh.core.property.descriptors import PropertyDescriptor
    from bokeh.core.property.singletons import Intrinsic, Undefined

    examine = PropertyDescriptor.has_unstable_default
    known: dict[tuple[int, type], bool] = {}
    of_class: dict[type, list[tuple[str, Any]]] = {}

    def has_unstable_default(self: Any, obj: Any) -> bool:
        key = (id(self), type(obj))
        found = known.get(key)
        if found is None:
            found = known[key] = examine(self, obj)
        return found

    def initialize(self: Any, **properties: Any) -> None:
        super(HasProps, self).__init__()
        self._property_values = {}
        self._unstable_default_values = {}
        self._unstable_themed_values = {}
        for name, value in properties.items():
            if value is not Undefined and value is not Intrinsic:
                setattr(self, name, value)
        unstable = of_class.get(type(self))
        if unstable is None:
            every = ((name, self.lookup(name)) for name in self.properties(_with_props=True))
            unstable = of_class[type(self)] = [each for each in every if each[1].has_unstable_default(self)]
        for name, descriptor in unstable:
            if name not in properties:
                descriptor._get(self)
        self._initialized = True

    setattr(PropertyDescriptor, "has_unstable_default", has_unstable_default)  # noqa: B010
    setattr(HasProps, "__init__", initialize)  # noqa: B010


def _write_only_what_is_set() -> None:
    """Compute no value that is not written, and look for no theme where there is none."""
    from bokeh.core.has_props import HasProps
    from bokeh.core.property.wrappers import PropertyValueContainer

    every = HasProps.query_properties_with_values

    def themed_values(self: Any) -> Any:
        return self.__dict__.get("__themed_values__")

    def query(
        self: Any, query: Any, *, include_defaults: bool = True, include_undefined: bool = False
    ) -> dict[str, Any]:
        if include_defaults or include_undefined or themed_values(self) is not None:
            return every(self, query, include_defaults=include_defaults, include_undefined=include_undefined)
        made = self._unstable_default_values
        found = {}
        for name in self.properties(_with_props=True):
            if name not in self._property_values and name not in made:
                continue
            descriptor = self.lookup(name)
            if not query(descriptor):
                continue
            value = descriptor.get_value(self)
            if name not in made or not isinstance(value, PropertyValueContainer):
                found[name] = value
        return found

    setattr(HasProps, "themed_values", themed_values)  # noqa: B010
    setattr(HasProps, "query_properties_with_values", query)  # noqa: B010


def _remember_descriptions() -> None:
    """Remember the descriptions of types, which checks of dicts make for messages that are seldom shown."""
    from bokeh.core.property.bases import ParameterizedProperty

    describe = ParameterizedProperty.__str__
    known: dict[int, str] = {}

    def described(self: Any) -> str:
        found = known.get(id(self))
        if found is None:
            found = known[id(self)] = describe(self)
        return found

    setattr(ParameterizedProperty, "__str__", described)  # noqa: B010


def _import_without_signatures() -> None:
    from bokeh.model import Model

    describe = Model.__dict__["parameters"]
    setattr(Model, "parameters", classmethod(lambda cls: []))  # noqa: B010
    try:
        import bokeh.models  # noqa: F401
    finally:
        setattr(Model, "parameters", describe)  # noqa: B010
