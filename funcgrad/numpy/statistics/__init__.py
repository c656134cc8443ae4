"""Statistics: averages and covariances, histograms, quantiles, and reductions that ignore NaN."""
