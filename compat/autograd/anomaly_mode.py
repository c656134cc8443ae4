"""``torch.autograd.anomaly_mode``: looking for gradients that are not numbers."""

from compat._core.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
