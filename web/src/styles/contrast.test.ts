import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync('src/styles/tokens.css', 'utf8');

/** Of each theme, the colours by name. */
function colours(theme: string): Map<string, string> {
  const dark = css.slice(css.indexOf(':root {'), css.indexOf(':root[data-theme'));
  const light = css.slice(css.indexOf(':root[data-theme'));
  return new Map([...(theme === 'dark' ? dark : light).matchAll(/--([a-z-]+): (#[0-9a-f]{6,8});/g)].map(([, name = '', value = '']) => [name, value]));
}

const channels = (hex: string) => [1, 3, 5, 7].map((at) => (hex.length > at ? parseInt(hex.slice(at, at + 2), 16) / 255 : 1));

/** A colour that lets something through, on another one. */
function on(over: string, under: string): number[] {
  const [top, below] = [channels(over), channels(under)];
  return [0, 1, 2].map((i) => (top[i] ?? 0) * (top[3] ?? 1) + (below[i] ?? 0) * (1 - (top[3] ?? 1)));
}

/** Of WCAG 2.2, between 1 and 21. */
function contrast(a: number[], b: number[]): number {
  const light = (rgb: number[]) => {
    const [r = 0, g = 0, blue = 0] = rgb.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

for (const theme of ['dark', 'light']) {
  const all = colours(theme);
  const of = (name: string) => all.get(name) ?? expect.fail(`no --${name} in the ${theme} theme`);
  const plain = (name: string) => channels(of(name)).slice(0, 3);
  describe(`the ${theme} theme`, () => {
    it('shows where fields are: 3 to 1 against what is in them and around them (WCAG 1.4.11)', () => {
      for (const ground of ['ground', 'surface', 'raised']) expect(contrast(plain('field-line'), plain(ground)), ground).toBeGreaterThanOrEqual(3);
    });
    it('can be read at the very edge of a table that scrolls, where a shadow tells that there is more', () => {
      const edge = on(of('edge'), of('surface'));
      for (const text of ['text', 'soft']) expect(contrast(plain(text), edge), text).toBeGreaterThanOrEqual(4.5);
      for (const text of ['faint', 'accent', 'good', 'warn', 'bad']) expect(contrast(plain(text), edge), text).toBeGreaterThanOrEqual(3);
    });
    it('can be read on the band of the verdict, whose ground is no plain colour: axe does not measure it', () => {
      for (const wash of ['good-wash', 'warn-wash', 'bad-wash']) {
        const band = on(of(wash), of('surface'));
        for (const text of ['text', 'soft', 'accent', 'faint']) expect(contrast(plain(text), band), `${text} on ${wash}`).toBeGreaterThanOrEqual(4.5);
        for (const sign of ['good', 'warn', 'bad']) expect(contrast(plain(sign), band), `${sign} on ${wash}`).toBeGreaterThanOrEqual(3);
      }
    });
  });
}
