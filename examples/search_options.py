"""Searches for better options of a training with KerasTuner, and says which are the best.

    pip install 'keras-tuner>=1.4.6' scikit-learn
    python examples/search_options.py RECORDS FOLDER 12

Each trial is a training in a folder of its own below FOLDER. A search that was stopped resumes, and
one with more trials goes on. Trials are compared by the eval split; the test split says afterwards
how good the best one is.
"""

import sys

import keras_tuner

import darkroom

# Those of all trials.
OPTIONS = {"model": "small_cnn", "image_size": 64, "epochs": 20}


class Search(keras_tuner.BayesianOptimization):
    """Trains with the options that KerasTuner would like to try next."""

    def run_trial(self, trial, records):
        """Returns the score of one trial."""
        values = trial.hyperparameters
        result = darkroom.train(
            records,
            f"{self.get_trial_dir(trial.trial_id)}/training",
            learning_rate=values.Float("learning_rate", 3e-4, 3e-2, sampling="log"),
            augment=values.Choice("augment", ["none", "flip", "crop,flip", "crop,flip,color=0.2"]),
            batch_size=values.Choice("batch_size", [8, 16, 32]),
            **OPTIONS,
        )
        return {"val_accuracy": result.metrics["val_accuracy"]}


def search(records, folder, num_trials):
    """Returns the options of the best trial, and the folder of its training."""
    goal = keras_tuner.Objective("val_accuracy", "max")
    tuner = Search(objective=goal, max_trials=num_trials, seed=1, directory=folder)
    tuner.search(records)
    best = tuner.oracle.get_best_trials()[0]
    return best.hyperparameters.values, f"{tuner.get_trial_dir(best.trial_id)}/training"


if __name__ == "__main__":
    records, folder, num_trials = sys.argv[1:]
    values, training = search(records, folder, int(num_trials))
    print(f"Best options {values}\nTraining     {training}")
