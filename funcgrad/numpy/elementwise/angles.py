"""Angles: in radians and in degrees, and of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy import elementwise as e
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as p


def deg2rad(x: Any, /) -> Any:
    """Degrees to radians.

    Args:
        x: an array or number, complex ones too; integers and bools are taken as float32.

    Returns:
        An array of the shape of ``x`` and its floating or complex dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(deg2rad(180.0))
        3.1415927
    """
    (x,) = promoted(asoperand(x, "deg2rad"), floating=True)
    return p.scale(x, np.pi / 180)


def rad2deg(x: Any, /) -> Any:
    """Radians to degrees.

    Args:
        x: an array or number, complex ones too; integers and bools are taken as float32.

    Returns:
        An array of the shape of ``x`` and its floating or complex dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(rad2deg(np.pi))
        180.0
    """
    (x,) = promoted(asoperand(x, "rad2deg"), floating=True)
    return p.scale(x, 180 / np.pi)


radians, degrees = deg2rad, rad2deg


def angle(z: Any, deg: bool = False) -> Any:
    """The angle of a complex number, in radians, or in degrees.

    Args:
        z: an array or number; real ones have the angle 0, or pi if negative.
        deg: whether to return degrees.

    Returns:
        An array of the shape of ``z``, of the dtype of its real part; float32 for integers and bools.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(angle(1j))
        1.5707964
    """
    radians = e.arctan2(e.imag(z), e.real(z))
    return rad2deg(radians) if deg else radians


__all__ = ["angle", "deg2rad", "degrees", "rad2deg", "radians"]
