"""The signature of an exported program: what its graph's inputs and outputs are."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = [
    "ConstantArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind",
    "OutputSpec", "TensorArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor of a graph, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A number, a string or None among inputs or outputs."""

    name: str
    value: bool | int | float | complex | str | None


class InputKind(enum.Enum):
    """The kind of an input of a graph."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4
    CUSTOM_OBJ = 5
    TOKEN = 6


class OutputKind(enum.Enum):
    """The kind of an output of a graph."""

    USER_OUTPUT = 1
    LOSS_OUTPUT = 2
    BUFFER_MUTATION = 3
    PARAMETER_MUTATION = 4
    GRADIENT_TO_PARAMETER = 5
    GRADIENT_TO_USER_INPUT = 6
    USER_INPUT_MUTATION = 7
    TOKEN = 8


@dataclass
class InputSpec:
    """An input of a graph.

    Attributes:
        kind: what it is.
        arg: its node.
        target: of a weight, its name in the module; else None.
        persistent: of a buffer, whether it is in the module's state dictionary; else None.
    """

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        shown = _shown(self.arg, self.kind, self.target)
        return shown if self.persistent is None else f"{shown} persistent={self.persistent}"


@dataclass
class OutputSpec:
    """An output of a graph.

    Attributes:
        kind: what it is.
        arg: its node, or a constant.
        target: what it is written into; None for a result.
    """

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None

    def __str__(self) -> str:
        return _shown(self.arg, self.kind, self.target)


def _shown(arg: TensorArgument | ConstantArgument, kind: enum.Enum, target: str | None) -> str:
    return f"{arg.name}: {kind.name}" + ("" if target is None else f" target='{target}'")


@dataclass
class ExportBackwardSignature:
    """The gradients among the outputs of a graph: of parameters and of the user's inputs, and the loss, by name."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> program.graph_signature.inputs_to_parameters
        {'p_weight': 'weight', 'p_bias': 'bias'}
        >>> print(program.graph_signature.input_specs[0])
        p_weight: PARAMETER target='weight'
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target is not None}

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind and s.target is not None}

    @property
    def parameters(self) -> Sequence[str]:
        """The names of the parameters."""
        return tuple(self._inputs(InputKind.PARAMETER).values())

    @property
    def buffers(self) -> Sequence[str]:
        """The names of the buffers."""
        return tuple(self._inputs(InputKind.BUFFER).values())

    @property
    def non_persistent_buffers(self) -> Sequence[str]:
        """The names of the buffers that are not in the state dictionary."""
        kept = (s for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False)
        return tuple(s.target for s in kept if s.target is not None)

    @property
    def lifted_tensor_constants(self) -> Sequence[str]:
        """The names of other tensors that are inputs of the graph."""
        return tuple(self._inputs(InputKind.CONSTANT_TENSOR).values())

    @property
    def lifted_custom_objs(self) -> Sequence[str]:
        """The names of objects that are inputs of the graph."""
        return tuple(self._inputs(InputKind.CUSTOM_OBJ).values())

    @property
    def user_inputs(self) -> Sequence[bool | int | float | complex | str | None]:
        """The nodes of the user's inputs, by name; of constants, their values."""
        return tuple(_value(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> Sequence[bool | int | float | complex | str | None]:
        """The nodes of the results, by name; of constants, their values."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_value(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The names of parameters by those of nodes."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The names of buffers by those of nodes."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The names of constants by those of nodes."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> dict[str, str]:
        """The names of objects by those of nodes."""
        return self._inputs(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The names of buffers by those of outputs that are written into them; empty if the graph writes in place."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """The names of parameters by those of outputs that are written into them."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """The names of the user's inputs by those of outputs that are written into them."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """The gradients and the loss among the outputs; None if there is no loss."""
        losses = [s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        of_parameters = self._outputs(OutputKind.GRADIENT_TO_PARAMETER)
        return ExportBackwardSignature(of_parameters, self._outputs(OutputKind.GRADIENT_TO_USER_INPUT), losses[0])

    @property
    def input_tokens(self) -> Sequence[str]:
        """The nodes of inputs that order side effects."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> Sequence[str]:
        """The nodes of outputs that order side effects."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    @property
    def assertion_dep_token(self) -> dict[int, str] | None:
        """The output that orders assertions; always None."""
        return None

    def __str__(self) -> str:
        inputs, outputs = ("\n".join(map(str, specs)) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _value(arg: TensorArgument | ConstantArgument) -> bool | int | float | complex | str | None:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
