"""The tables of parameters and settings on the pages of the resolvers, as the code has them."""

from __future__ import annotations

from konverge_resolution import Parameter, Resolver, Setting

__all__ = ["build_parameter_table", "build_setting_table"]


def build_parameter_table(resolver: Resolver) -> str:
    """Return the table of a resolver's parameters, with the empty line after it."""
    rows = [
        f"| `{name}` | {each.description} | {_format_default(each)} |\n" for name, each in resolver.parameters.items()
    ]
    return "| parameter | what it says | default |\n|---|---|---|\n" + "".join(rows) + "\n"


def build_setting_table(resolver: Resolver) -> str:
    """Return the table of a resolver's settings, with the empty line after it."""
    rows = [_format_setting(name, each) for name, each in resolver.settings.items()]
    return "| setting | type | what it does | default |\n|---|---|---|---|\n" + "".join(rows) + "\n"


def _format_default(parameter: Parameter) -> str:
    if parameter.setting:
        return f"setting `{parameter.setting}`"
    if parameter.default:
        return f"`{parameter.default}`"
    return "required" if parameter.required else ""


def _format_setting(name: str, setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default else ""
    return f"| `{name}` | {setting.type} | {setting.description} | {default} |\n"
