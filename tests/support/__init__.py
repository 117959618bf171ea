"""What tests of several packages share: honest skips, JupyterLab servers, a browser that drives them."""
