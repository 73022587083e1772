"""examples/web's page in headless Chromium, as a phone sees it: a picture is chosen, and what comes back is looked at."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

import browser
from harness import LONG, import_package
from web_server import running

import_package()
import small_pictures  # noqa: E402

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(not (LONG and CHROMIUM), reason="LINNET_LONG=1 and chromium")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    models = [f"--model={make.__name__}={make(folder / (make.__name__ + '.lnt'))}" for make in (small_pictures.faces, small_pictures.areas)]
    with running(*models, "--values", "raw") as (url, _):
        yield url


@pytest.fixture
def phone(url):
    with browser.Browser(CHROMIUM) as phone:
        phone.call("Page.navigate", url=url + "/")
        phone.wait_for("document.querySelectorAll('#model option').length == 2")
        yield phone


def save(path, size, x, y, side, value):
    array = np.zeros((size[1], size[0], 3), np.uint8)
    array[y:y + side, x:x + side] = value
    Image.fromarray(array).save(path)
    return path


def pixels_of_the_picture(phone):
    """What the page shows of it, and its place."""
    phone.wait_for("document.querySelector('#picture').complete && document.querySelector('#picture').naturalWidth > 0")
    box = phone.value("(r => [r.x, r.y + scrollY, r.width, r.height])(document.querySelector('#picture').getBoundingClientRect())")
    x, y, width, height = (round(v) for v in box)
    screen = np.asarray(Image.open(io.BytesIO(phone.screenshot())).convert("RGB")).astype(int)
    return screen[y:y + height, x:x + width]


def answer(phone):
    return phone.wait_for("Array.from(document.querySelectorAll('#answer li'), e => e.textContent).join('|')")


def test_a_phone_sees_a_face_in_its_box(phone, url, tmp_path):
    phone.choose_file("#file", save(tmp_path / "p.png", (640, 320), 320, 96, 8, 255))
    assert answer(phone) == "100.0 %  face 1"
    assert phone.value("document.querySelector('#error').textContent") == ""
    pixels = pixels_of_the_picture(phone)
    green = (pixels[..., 1] > pixels[..., 0] + 60) & (pixels[..., 1] > pixels[..., 2] + 60)
    rows, columns = np.nonzero(green)
    scale = pixels.shape[1] / 640
    assert abs(columns.mean() - 324 * scale) < 3 and abs(rows.mean() - 100 * scale) < 3
    assert phone.value("document.documentElement.scrollWidth") <= browser.WIDTH, "wider than the phone"
    assert phone.value("document.querySelector('.take').getBoundingClientRect().height") >= 44, "too small for a thumb"
    assert all(r.startswith((url, "data:")) for r in phone.requests) and len(phone.requests) >= 3


def test_a_mask_is_drawn_and_named(phone, tmp_path):
    phone.value("document.querySelector('#model').value = 'areas'")
    phone.choose_file("#file", save(tmp_path / "p.png", (320, 320), 0, 0, 160, (0, 0, 255)))
    assert answer(phone) == "75.0 %  class 0|25.0 %  class 3"
    pixels = pixels_of_the_picture(phone)
    half = pixels.shape[0] // 2
    assert pixels[8:half - 4, 8:half - 4].max(axis=2).min() > 60 and pixels[half + 4:-8, 8:-8].max() < 30  # its corners are round


def test_what_is_no_picture_is_said_and_the_next_one_is_taken(phone, tmp_path):
    (tmp_path / "p.png").write_text("no picture")
    phone.choose_file("#file", tmp_path / "p.png")
    assert "no picture" in phone.wait_for("document.querySelector('#error').textContent")
    assert phone.value("document.querySelector('#picture').hidden")
    phone.choose_file("#file", save(tmp_path / "q.png", (64, 64), 8, 8, 8, 255))
    assert answer(phone) == "100.0 %  face 1" and phone.value("document.querySelector('#error').textContent") == ""
