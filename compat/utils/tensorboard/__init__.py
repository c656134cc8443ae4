"""``torch.utils.tensorboard``: logging for TensorBoard, by the package ``tensorboard``."""

try:
    import tensorboard
except ImportError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard writes by the package tensorboard, which is not installed: pip install tensorboard, "
        "or funcgrad[tensorboard]",
        name="tensorboard",
    ) from error

from compat.utils.tensorboard import summary
from compat.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter", "summary"]
