"""How far a training is: loaded from its folder, checked, and saved."""
