// The copies of a LUN on two nodes, of which this one is the first: the daemon is in no cluster, so the page is told that.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Lun, Mirror } from '../src/api/types.ts';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon(false);
let browser: Browser;
const { page, text } = steps(() => browser);
let mirror: Mirror;

describe('the copies of a LUN', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('lun', 'create', 'vm01', '--size', '60M');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    const { node } = JSON.parse(daemon.run('api', 'GET', '/api/v1/status')) as { node: string };
    mirror = { state: 'owner', owner: node, epoch: 7, copies: [node, 'san-b'], in_sync: [node, 'san-b'], serves: true, text: `served here; ${node} and san-b have all of it` };
    await page().route('**/api/v1/luns/vm01', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json() as Lun), copies: mirror.copies, mirror } });
    });
  });
  after(() => end(browser, daemon));

  const card = (name: string) => page().getByRole('region', { name });

  it('stand side by side, with the state of each and what happens when a node fails', async () => {
    await browser.go('/luns/vm01?show=copies');
    const [node] = mirror.copies;
    await card(`Copy on ${node}`).getByText('this node').waitFor();
    await card('Copy on san-b').getByText('replica').waitFor();
    const boxes = await Promise.all([card(`Copy on ${node}`), card('Copy on san-b')].map((one) => one.boundingBox()));
    assert.equal(boxes[0]?.y, boxes[1]?.y);
    await card('What happens when').getByText('san-b takes over: hosts wait for up to 5 s, and see no error').waitFor();
    const now = card('What the copy on this node goes through').locator('[aria-current=step]');
    assert.equal(await now.innerText(), 'owner');
    assert.equal(await card('What to do').count(), 0);
    assert.deepEqual(await browser.axeInBoth('copies of a LUN', 'main'), []);
  });

  it('say what to do where one is behind', async () => {
    const [node = ''] = mirror.copies;
    mirror = { ...mirror, state: 'solo', in_sync: [node], text: `served here; ${node} has all of it alone, san-b is behind` };
    await browser.go('/luns/vm01?show=copies');
    await card('What to do').getByText(/^Start san-b, or mend its network/).waitFor();
    await text(new RegExp(`^nobody serves before ${node} is back`)).waitFor();
  });

  it('show how far one is that is brought up', async () => {
    mirror = { ...mirror, resyncs: [{ node: 'san-b', done_bytes: 3 << 20, left_bytes: 1 << 20, sent_bytes: 8192, bytes_per_second: 1 << 20, seconds_left: 1 }] };
    await browser.go('/luns/vm01?show=copies');
    await card('Copy on san-b').getByRole('progressbar').waitFor();
    await card('Copy on san-b').getByText('3 MiB of 4 MiB').waitFor();
    await card('Copy on san-b').getByText('1 MiB/s').waitFor();
    mirror = { ...mirror, resyncs: [] };
  });

  it('guide whoever is there first after a blackout', async () => {
    const [node = ''] = mirror.copies;
    mirror = { ...mirror, state: 'joining', owner: 'san-b', in_sync: ['san-b'], serves: false, text: `this node waits to hear of san-b, or of etcd` };
    await browser.go('/luns/vm01?show=copies');
    await card('What to do').getByText('Start san-b: it has all of it, and this node has not, so it does not serve.').waitFor();
    await card(`Copy on ${node}`).getByText('is not there').waitFor();
  });
});
