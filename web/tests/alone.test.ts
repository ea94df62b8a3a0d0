// Who stays with a LUN or a host is sent that alone, and all again behind it. The page's clock is the test's: what the
// page does after some seconds it does at once, and what it never does it has not done then either.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { enterWithAll, furnish } from './furnish.ts';
import { end, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, text } = steps(() => browser);
/** Longer than the page waits before it takes somebody for one who stays. */
const STAYS_MS = 6_000;
/** The topics of each stream that the page has opened. */
const streams: string[] = [];
const newest = () => streams.at(-1) ?? '';
/** How often it has asked what is done, without a stream. */
let polls = 0;
/** The topics of each message that said what is done. */
const heard = () => page().evaluate(() => (window as unknown as { heard: string[] }).heard);

/** In the page: what comes by its streams. */
function listen(): void {
  const heard: string[] = [];
  const Own = EventSource;
  const Heard = class extends Own {
    constructor(url: string) {
      super(url);
      const topics = new URL(url, location.href).searchParams.get('topics') ?? '';
      for (const name of ['activity', 'activity_change']) this.addEventListener(name, () => heard.push(topics));
    }
  };
  Object.assign(window, { heard, EventSource: Heard });
}

describe('one object alone', { skip }, () => {
  before(async () => {
    await daemon.start();
    furnish(daemon);
    browser = await Browser.open(daemon.url);
    await page().clock.install();
    await page().addInitScript(listen);
    await enterWithAll(browser, daemon);
    page().on('request', (request) => {
      if (request.resourceType() === 'eventsource') streams.push(new URL(request.url()).searchParams.get('topics') ?? '');
      if (request.url().endsWith('/api/v1/activity')) polls++;
    });
  });
  after(() => end(browser, daemon));

  it('is asked for once it has been shown for some seconds, with the hosts that may use it', async () => {
    await browser.go('/luns/vm01');
    await page().getByRole('heading', { level: 1, name: 'vm01' }).waitFor();
    await browser.settled();
    await page().clock.runFor(STAYS_MS);
    await until('the LUN alone is asked for', () => newest().includes('lun:vm01'));
    assert.match(newest(), /^overview,lun:vm01(,host:[^,]+)+,events$/);
    // Its figures come by this stream, and by nothing else.
    const topics = newest();
    const messages = async () => (await heard()).filter((one) => one === topics).length;
    await until('its figures come', async () => (await messages()) >= 1);
    const [count, asked] = [streams.length, polls];
    await until('its figures go on', async () => (await messages()) >= 3);
    await text('live').first().waitFor();
    assert.deepEqual([streams.length, polls], [count, asked], 'one stream, and nothing asked beside it');
  });

  it('is followed by the next one without the whole between', async () => {
    const [, host = ''] = /host:([^,]+)/.exec(newest()) ?? [];
    await browser.go(`/hosts/${host}`);
    await until('the host alone is asked for', () => newest() === `overview,host:${host},events`);
    assert.ok(!streams.slice(1).includes('activity,events'), streams.join(' '));
  });

  it('is not asked for where all is shown', async () => {
    await browser.go('/');
    await until('all is asked for', () => newest() === 'activity,events');
    await browser.go('/luns');
    await browser.settled();
    const count = streams.length;
    await page().clock.runFor(STAYS_MS);
    await browser.settled();
    assert.deepEqual(streams.slice(count), []);
  });
});
