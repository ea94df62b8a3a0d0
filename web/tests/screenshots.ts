// Screenshots of every screen for the documents, at three widths in both themes: web/tests/screenshots.ts DIRECTORY [URL]

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.ts';
import { Daemon } from './daemon.ts';
import { furnish } from './furnish.ts';

const SCREENS: [string, string][] = [
  ['overview', '/?span=60'],
  ['topology', '/topology?lost=portal%3A127.0.1.1%3APORT'],
  ['luns', '/luns'],
  ['lun', '/luns/vm01?span=60'],
];
const WIDTHS: [number, number][] = [[1280, 800], [1920, 1080], [390, 844]];

async function take(url: string, dir: string, port: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const only = process.env['ONLY']?.split(',');
  for (const theme of ['dark', 'light'] as const) {
    for (const [width, height] of WIDTHS) {
      if (process.env['WIDTHS'] && !process.env['WIDTHS'].split(',').includes(String(width))) continue;
      const browser = await Browser.open(url, theme, width, height);
      await browser.page.goto('/?span=60');
      await browser.page.getByRole('banner').getByText('live', { exact: true }).waitFor();
      // The charts show a minute.
      await browser.page.waitForTimeout(Number(process.env['WAIT'] ?? 60_000));
      for (const [name, path] of SCREENS) {
        if (only && !only.includes(name)) continue;
        await browser.go(path.replace('PORT', port));
        await browser.page.waitForTimeout(3_000);
        await browser.page.screenshot({ path: join(dir, `${name}-${width}-${theme}.png`) });
      }
      await browser.close();
      browser.well();
    }
  }
}

const [dir, url] = process.argv.slice(2);
if (!dir) throw new Error('usage: screenshots.ts DIRECTORY [URL]');
if (url) {
  await take(url, dir, process.env['PORT'] ?? '3260');
} else {
  const daemon = new Daemon();
  await daemon.start();
  try {
    furnish(daemon);
    await take(daemon.url, dir, String(daemon.port));
  } finally {
    await daemon.stop();
  }
}
