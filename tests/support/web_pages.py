"""What claims about self-contained pages share: their elements, and what Chromium measures."""

from html.parser import HTMLParser

WIDTHS = {"phone": 375, "tablet": 768, "desktop": 1280}
# Elements and attributes that make a browser fetch something.
FETCHING = {"img", "link", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


class Elements(HTMLParser):
    """The start tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Keep it."""
        self.tags.append((tag, dict(attrs)))


# The worst contrast of any text on a page, and where that is.
CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = node => {
    const own = node ? rgb(getComputedStyle(node).backgroundColor) : [255, 255, 255, 255];
    if (own[3] === 255) return own;
    const under = behind(node.parentElement), share = own[3] / 255;
    return own.slice(0, 3).map((v, k) => v * share + under[k] * (1 - share)).concat(255);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let worst = [99, ''];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility() || node.closest('svg, td.none'))
      continue;
    const colours = [rgb(getComputedStyle(node).color), behind(node)];
    const [a, b] = colours.map(light).sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.className + ': ' + texts.currentNode.data.trim()];
  }
  return worst;
})()"""
