"""Learn to read handwritten digits: a small network, its gradient by cgrad, Adam in plain NumPy.

    pip install ".[examples]" && python examples/digits.py

Prints the accuracy on images that were held out, and writes digits.png beside this file.
"""
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import cgrad
from cgrad.losses import categorical_crossentropy

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

EPOCHS, BATCH, LEARNING_RATE = 40, 32, 2e-3


def load(rng, held_out=360):
    """The 1,797 images, 8 x 8 pixels in [0, 1], shuffled; their digits; training and held-out parts."""
    images, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    images, digits = images[order] / 16, digits[order]
    return (images[held_out:], digits[held_out:]), (images[:held_out], digits[:held_out])


def initial_parameters(rng, sizes=(64, 64, 10)):
    """One dict per layer: weights of variance 2/inputs, biases of zero."""
    return {
        f"layer {n}": {"W": rng.normal(0, np.sqrt(2 / before), (before, after)), "b": np.zeros(after)}
        for n, (before, after) in enumerate(zip(sizes, sizes[1:]))
    }


def network(parameters, images):
    """One score (logit) per image and digit."""
    *hidden, last = parameters.values()
    x = images
    for layer in hidden:
        x = np.maximum(x @ layer["W"] + layer["b"], 0)
    return x @ last["W"] + last["b"]


def loss(parameters, images, one_hot):
    return categorical_crossentropy(one_hot, network(parameters, images), from_logits=True, reduction="mean")


class Adam:
    """Steps along the gradient, scaled by running means of it and of its square (Kingma and Ba, 2015)."""

    def __init__(self, parameters, rate, mean_decay=0.9, square_decay=0.999):
        self.rate, self.decays, self.count = rate, (mean_decay, square_decay), 0
        self.means = {name: {k: np.zeros_like(p) for k, p in layer.items()} for name, layer in parameters.items()}
        self.squares = {name: {k: np.zeros_like(p) for k, p in layer.items()} for name, layer in parameters.items()}

    def update(self, parameters, gradient):
        """Change the parameters in place."""
        self.count += 1
        first, second = self.decays
        for name, layer in parameters.items():
            for k, p in layer.items():
                g, mean, square = gradient[name][k], self.means[name][k], self.squares[name][k]
                mean += (1 - first) * (g - mean)
                square += (1 - second) * (g**2 - square)
                corrected = np.sqrt(square / (1 - second**self.count))
                p -= self.rate * mean / (1 - first**self.count) / (corrected + 1e-8)


def train(parameters, images, digits, rng):
    """Minimise the loss in batches; returns its value at each step."""
    loss_and_gradient = cgrad.value_and_grad(loss)      # by the parameters: dicts of arrays in, dicts of arrays out
    optimiser = Adam(parameters, LEARNING_RATE)
    one_hot = np.eye(10)[digits]
    losses = []
    progress = tqdm(range(EPOCHS), unit="epoch")
    for _ in progress:
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            batch = order[start:start + BATCH]
            value, gradient = loss_and_gradient(parameters, images[batch], one_hot[batch])
            optimiser.update(parameters, gradient)
            losses.append(value)
        progress.set_postfix(loss=f"{np.mean(losses[-len(order) // BATCH:]):.4f}", refresh=False)
    return losses


def picture(path, losses, images, digits, predicted):
    """The loss over the steps, and a row of held-out images with what was read."""
    figure = plt.figure(figsize=(9, 5), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2, 1))
    axes = above.subplots()
    axes.semilogy(losses, linewidth=0.5)
    axes.set(xlabel="step", ylabel="cross-entropy of the batch")
    # the wrong ones first: they are the interesting ones
    shown = np.argsort(predicted == digits, kind="stable")[:12]
    below.suptitle("what was read; red where wrong", fontsize="medium")
    for axes, n in zip(below.subplots(1, len(shown)), shown):
        axes.imshow(images[n].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{predicted[n]}", color="black" if predicted[n] == digits[n] else "red")
        axes.axis("off")
    figure.savefig(path, dpi=120)


def main():
    rng = np.random.default_rng(0)
    (images, digits), (test_images, test_digits) = load(rng)
    parameters = initial_parameters(rng)
    losses = train(parameters, images, digits, rng)

    predicted = np.argmax(network(parameters, test_images), axis=1)
    print(f"accuracy on {len(test_digits)} held-out images: {np.mean(predicted == test_digits):.1%}")

    path = Path(__file__).resolve().with_name("digits.png")
    picture(path, losses, test_images, test_digits, predicted)
    print(f"loss curve and some predictions: {path}")


if __name__ == "__main__":
    main()
