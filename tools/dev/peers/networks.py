"""The networks of clnet-bench in PyTorch."""
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.down(x) if self.down else x))


class Inverted(nn.Module):
    def __init__(self, cin, cout, stride, expansion):
        super().__init__()
        wide = cin * expansion
        layers = [norm(cin, wide, 1, 1, 1)] if expansion != 1 else []
        layers += [norm(wide, wide, 3, stride, wide), nn.Conv2d(wide, cout, 1, bias=False), nn.BatchNorm2d(cout)]
        self.conv, self.residual = nn.Sequential(*layers), stride == 1 and cin == cout

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


def norm(cin, cout, kernel, stride, groups):
    conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(cout), nn.ReLU6(inplace=True))


def resnet18():
    layers, cin = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            layers.append(Block(cin, width, 2 if stage and not block else 1))
            cin = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Bottleneck(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        width = cout // 4
        self.main = nn.Sequential(
            nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, cout, 1, bias=False), nn.BatchNorm2d(cout))
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return torch.relu(self.main(x) + (self.down(x) if self.down else x))


def resnet50():
    layers, cin = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (width, blocks) in enumerate(((256, 3), (512, 4), (1024, 6), (2048, 3))):
        for block in range(blocks):
            layers.append(Bottleneck(cin, width, 2 if stage and not block else 1))
            cin = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def vgg16():
    layers, cin = [], 3
    for width, count in (64, 2), (128, 2), (256, 3), (512, 3), (512, 3):
        for _ in range(count):
            layers += [nn.Conv2d(cin, width, 3, padding=1), nn.ReLU(inplace=True)]
            cin = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(), nn.Dropout(),
                         nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000))


def mobilenetv2():
    layers, cin = [norm(3, 32, 3, 2, 1)], 32
    for t, c, n, s in (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1):
        for block in range(n):
            layers.append(Inverted(cin, c, 1 if block else s, t))
            cin = c
    return nn.Sequential(*layers, norm(320, 1280, 1, 1, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(1280, 1000))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def keras_cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5408, 10))


def lenet5():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


# name: (function, shape of an image, classes)
NETWORKS = {"resnet18": (resnet18, (3, 224, 224), 1000), "resnet50": (resnet50, (3, 224, 224), 1000),
            "vgg16": (vgg16, (3, 224, 224), 1000), "mobilenetv2": (mobilenetv2, (3, 224, 224), 1000),
            "cnn": (cnn, (1, 28, 28), 10), "keras-cnn": (keras_cnn, (1, 28, 28), 10), "lenet5": (lenet5, (1, 28, 28), 10)}


def perceptron():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def transformer(width, heads, layers):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)


class CharGpt(nn.Module):
    """models::CharGpt, with a step that keeps keys and values."""

    def __init__(self, alphabet=65, width=128, heads=4, layers=4, context=64):
        super().__init__()
        self.emb, self.positions = nn.Embedding(alphabet, width), nn.Embedding(context, width)
        self.encoder, self.fc = transformer(width, heads, layers), nn.Linear(width, alphabet)
        self.heads, self.context = heads, context
        self.mask = nn.Transformer.generate_square_subsequent_mask(context)

    def forward(self, x):
        y = self.emb(x) + self.positions(torch.arange(x.shape[1]))
        return self.fc(self.encoder(y, mask=self.mask, is_causal=True))

    def step(self, character, position, caches):
        y = self.emb(character) + self.positions(position)
        for layer, cache in zip(self.encoder.layers, caches):
            of = layer.self_attn
            q, k, v = functional.linear(layer.norm1(y), of.in_proj_weight, of.in_proj_bias).view(3, self.heads, 1, -1)
            cache[0][:, position], cache[1][:, position] = k, v
            seen = slice(0, int(position) + 1)
            z = functional.scaled_dot_product_attention(q, cache[0][:, seen], cache[1][:, seen])
            y = y + of.out_proj(z.reshape(1, -1))
            y = y + layer.linear2(functional.gelu(layer.linear1(layer.norm2(y))))
        return self.fc(self.encoder.norm(y))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, 192)), nn.Parameter(torch.zeros(197, 192))
        self.encoder, self.head = transformer(192, 3, 12), nn.Linear(192, 1000)

    def forward(self, x):
        seen = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(len(x), 1, 192), seen], 1) + self.positions
        return self.head(self.encoder(y)[:, 0])


class UNet(nn.Module):
    def __init__(self, base=16):
        super().__init__()
        widths = [base << level for level in range(4)]
        self.down = nn.ModuleList(self.twice(a, b) for a, b in zip([3] + widths, widths))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[2::-1])
        self.up = nn.ModuleList(self.twice(2 * w, w) for w in widths[2::-1])
        self.head = nn.Conv2d(base, 2, 1)

    @staticmethod
    def twice(cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
                             nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())

    def forward(self, x):
        seen = []
        for level in self.down:
            x = level(functional.max_pool2d(x, 2) if seen else x)
            seen.append(x)
        for wider, up, skip in zip(self.wider, self.up, seen[2::-1]):
            x = up(torch.cat([skip, wider(x)], 1))
        return self.head(x)
