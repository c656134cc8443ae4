# packages: lightning skorch scikit-learn
"""A model trained by Lightning, and one by skorch within scikit-learn."""

import tempfile

import lightning
import numpy as np
import torch
from harness import report
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor


class Net(lightning.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log("loss", loss)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, index):
        self.log("validation", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


lightning.seed_everything(0, verbose=False)
x = torch.randn(32, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 8)
net = Net()
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=folder,
        gradient_clip_val=0.5, accumulate_grad_batches=2,
    )  # fmt: skip
    trainer.fit(net, loader, loader)
    report("lightning", net.losses)
    report("validation", trainer.callback_metrics["validation"])
    trainer.save_checkpoint(f"{folder}/net.ckpt")
    again = Net.load_from_checkpoint(f"{folder}/net.ckpt")
    report("checkpoint", again.layers(x))
data, labels = x.numpy(), (x.sum(1) > 0).long().numpy()
torch.manual_seed(0)
classifier = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2), torch.nn.Softmax(-1)),
    max_epochs=4, lr=0.1, verbose=0, train_split=None,
)  # fmt: skip
classifier.fit(data, labels)
report("skorch", [h["train_loss"] for h in classifier.history])
report("probabilities", torch.tensor(classifier.predict_proba(data)))
torch.manual_seed(0)
regressor = NeuralNetRegressor(torch.nn.Linear(4, 1), max_epochs=3, lr=0.05, verbose=0, train_split=None)
pipeline = make_pipeline(StandardScaler(), regressor)
report("cross validation", list(cross_val_score(pipeline, data, np.float32(data.sum(1, keepdims=True)), cv=3)))
