"""``torch.jit._script``: the classes of scripted modules, under the address that programs import them from."""

from compat.jit import RecursiveScriptModule, ScriptModule, export, interface, script, script_method

__all__ = ["RecursiveScriptModule", "ScriptModule", "export", "interface", "script", "script_method"]
