// A pool of two members: what lies on which, and who loses what with one of them.

import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const POOL = '[[pool]]\nname = "two"\nmembers = ["m0", "m1"]\nlayout = "span"\n';
const daemon = new Daemon(false, POOL);
let browser: Browser;
const { page, text } = steps(() => browser);

describe('members of a pool', { skip }, () => {
  before(async () => {
    for (const member of ['m0', 'm1']) {
      writeFileSync(join(daemon.dir, member), '');
      truncateSync(join(daemon.dir, member), 50 << 20);
    }
    await daemon.start();
    // 48 MiB of each member are chunks: the first LUN goes over the first one's end.
    daemon.run('share', 'create', 'both', '--size', '60M', '--pool', 'two', '--target', 'vms', '--for', 'iqn.2026-01.org.debian:web');
    daemon.run('share', 'create', 'second', '--size', '20M', '--pool', 'two', '--target', 'vms', '--for', 'iqn.1998-01.com.vmware:esx01');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  const row = (number: number) => page().getByRole('region', { name: 'Members of pool two' }).getByRole('row').nth(number + 1);

  it('says which LUNs lie on each', async () => {
    await browser.go('/pools/two');
    await row(0).getByText('both').waitFor();
    assert.equal(await row(0).getByText('second').count(), 0);
    await row(1).getByText('second').waitFor();
    await row(1).getByText('both').waitFor();
    assert.match(await row(0).innerText(), /50 MiB/);
  });

  it('says how LUNs lie in it, and how much room each member has left', async () => {
    await browser.go('/pools/two');
    await text(/^span: a LUN lies on as few members as it can, and is lost with any of those$/).waitFor();
    const { available, members } = JSON.parse(daemon.run('api', 'GET', '/api/v1/pools/two')) as { available: number; members: { taken_bytes: number }[] };
    assert.ok(members.every((one) => one.taken_bytes > 0));
    // The first one is full, and all that is left is on the second.
    const free = async (number: number) => (await row(number).getByRole('cell').nth(6).innerText()).trim();
    assert.deepEqual([await free(0), await free(1)], ['0 B', `${(available / 2 ** 20).toFixed(0)} MiB`]);
    const luns = page().getByRole('region', { name: 'The largest of its LUNs' });
    await luns.getByRole('row', { name: /^both .* all / }).waitFor();
    await luns.getByRole('row', { name: /^second .* 1 / }).waitFor();
  });

  it('says of a LUN on which of them it lies', async () => {
    await browser.go('/luns/both?show=settings');
    await text('it is lost with any of them').waitFor();
    await browser.go('/luns/second?show=settings');
    await text('it is lost with this one alone').waitFor();
    assert.match(await page().locator('main').innerText(), /1 \(.*m1\)/);
  });

  it('draws who loses what with one of them, before it happens', async () => {
    await browser.go('/pools/two');
    const lies = async (number: number) => {
      await row(number).getByText('Who loses what').click();
      await page().waitForURL('**/topology?lost=**');
    };
    await row(0).getByText('both').waitFor();
    const { members } = JSON.parse(daemon.run('api', 'GET', '/api/v1/pools/two')) as { members: { disks?: string[] }[] };
    const lost = page().getByRole('region', { name: 'What if it were lost' });
    await lies(0);
    await lost.waitFor();
    // On a machine whose disks are known both members are files on one of them.
    const both = members.every((member) => member.disks?.length);
    await lost.getByText(both ? /2 hosts would lose 2 LUNs/ : /Without member 0 of pool two, 1 host would lose 1 LUN\./).waitFor();
    await browser.go('/pools/two');
    await lies(1);
    await lost.getByText(/2 hosts would lose 2 LUNs/).waitFor();
  });
});
