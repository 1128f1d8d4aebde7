"""Those who race: conic, nonlinear and factor methods of other packages, and your own function."""
