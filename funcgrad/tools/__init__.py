"""What is built on transforms: costs, drawings, debugging, export, checks of derivatives."""
