// Who stays with a LUN or a host is sent that alone, and all again behind it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { openFurnished } from './furnish.ts';
import { end, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, text } = steps(() => browser);
/** The topics of each stream that the page has opened. */
const streams: string[] = [];
const newest = () => streams.at(-1) ?? '';

describe('one object alone', { skip }, () => {
  before(async () => {
    browser = await openFurnished(daemon);
    page().on('request', (request) => {
      if (request.resourceType() === 'eventsource') streams.push(new URL(request.url()).searchParams.get('topics') ?? '');
    });
  });
  after(() => end(browser, daemon));

  it('is asked for once it has been shown for some seconds, with the hosts that may use it', async () => {
    await browser.go('/luns/vm01');
    await until('the LUN alone is asked for', () => newest().includes('lun:vm01'));
    assert.match(newest(), /^overview,lun:vm01(,host:[^,]+)+,events$/);
    await browser.settled();
    assert.equal(await text('live').first().isVisible(), true);
    // Its figures go on: two seconds later the page is still live, by this stream.
    const count = streams.length;
    await page().waitForTimeout(4_000);
    assert.equal(await text('live').first().isVisible(), true);
    assert.equal(streams.length, count, 'one stream');
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
    await page().waitForTimeout(6_000);
    assert.equal(newest(), 'activity,events');
  });
});
