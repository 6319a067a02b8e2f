"""From text to batches: formats read it, filters choose, the store keeps, the plan orders, batches feed."""
