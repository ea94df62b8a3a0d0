// The pictures of the book: those of docs/img are the ones that are made, and each can be.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { LONG_MS } from './patience.ts';
import { EVERY, fileOf, furnished, take } from './pictures.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const GUIDE = join(DOCS, 'operate/pictures.md');
/** One width and theme of each screen. */
const SMALL = EVERY.filter((one) => one.width === 1280 && one.theme === 'dark');
/** A screen of which nothing is drawn has less. */
const LEAST_BYTES = 8_000;

const daemon = new Daemon(true);

/** Parts of the map whose names do not fit, or whose lines do not: they cannot be told apart then. */
async function cut(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const names = [...document.querySelectorAll<HTMLElement>('.head strong, .point .name, .point .flow')].filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0);
    const boxes = [...document.querySelectorAll<HTMLElement>('.point')].filter((box) => {
      const { top, bottom } = box.getBoundingClientRect();
      const lines = [...box.querySelectorAll('.name, .word, .flow')].map((one) => one.getBoundingClientRect());
      return lines.some((line) => line.height > 0 && (line.top < top + 2 || line.bottom > bottom - 2));
    });
    return [...names, ...boxes].map((one) => one.textContent.trim());
  });
}

/** Lines that name where the test's daemon is: a loopback address, one of its ports, its directory, or plain http of
 * somewhere: http://IP:PORT is a pattern. */
function ofThisMachine(text: string): string[] {
  const ports = [daemon.port, new URL(daemon.url).port, new URL(daemon.secureUrl).port].join('|');
  const telling = new RegExp(`\\b127\\.|\\b(?:${ports})\\b|${daemon.dir}|http://(?!IP:PORT)`);
  return text.split('\n').filter((line) => telling.test(line));
}
const dir = mkdtempSync(join(tmpdir(), 'causeway-pictures-'));

describe('pictures', { skip: here ? false : 'chromium is not here' }, () => {
  before(async () => {
    await daemon.start();
    await furnished(daemon);
  });
  after(async () => {
    await daemon.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it('of the book are those that are made, and the guide shows each of them', () => {
    const wanted = EVERY.map(fileOf).toSorted();
    assert.deepEqual(readdirSync(join(DOCS, 'img')).toSorted(), wanted);
    const shown = [...readFileSync(GUIDE, 'utf8').matchAll(/\.\.\/img\/([\w-]+\.png)/g)].map((one) => one[1] ?? '');
    assert.deepEqual([...new Set(shown)].toSorted(), wanted);
  });

  it('are made: each of another screen, of its size, and with nothing of this machine in the addresses', { timeout: LONG_MS }, async () => {
    const found: string[] = [];
    const look = async (name: string, page: Page, text: string) => {
      found.push(...ofThisMachine(text).map((one) => `${name}: ${one}`));
      if (name === 'topology') found.push(...(await cut(page)).map((one) => `${name} cuts ${one}`));
    };
    const made = await take(daemon, dir, SMALL, { waitMs: 1_000, benchSeconds: 2, drawnMs: 200, look });
    assert.deepEqual(found, [], 'what shows this machine, or is cut');
    assert.deepEqual(made.toSorted(), SMALL.map(fileOf).toSorted());
    const files = new Map(made.map((name) => [name, readFileSync(join(dir, name))]));
    for (const [name, file] of files) {
      assert.ok(file.length > LEAST_BYTES, `${name} has ${file.length} bytes`);
      assert.deepEqual([file.readUInt32BE(16), file.readUInt32BE(20)], [1280, 800], name);
    }
    assert.equal(new Set([...files.values()].map((file) => file.toString('base64'))).size, files.size, 'two of them are the same');
  });
});
