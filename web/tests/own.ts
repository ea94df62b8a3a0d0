// A test with a browser of its own, which is closed whatever happens.

import { it } from 'node:test';
import { Browser } from './browser.ts';
import type { Daemon } from './daemon.ts';
import { LONG_MS } from './patience.ts';

export interface Window {
  theme?: 'dark' | 'light';
  width?: number;
  height?: number;
}

export function withBrowser(daemon: Daemon) {
  return (name: string, window: Window, run: (browser: Browser) => Promise<void>): void => {
    void it(name, { timeout: LONG_MS }, async () => {
      const browser = await Browser.open(daemon.url, window.theme, window.width, window.height);
      try {
        await run(browser);
      } finally {
        await browser.close();
      }
      browser.well();
    });
  };
}
