"""Tools built on transforms: costs, drawings, debugging, export, checks of derivatives."""
