// Which pictures there are of the page, and how one is taken. `screenshots.ts` takes them; `pictures.test.ts` takes those
// of the book in a small form.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { Browser } from './browser.ts';
import type { Daemon } from './daemon.ts';
import { firing, furnish, LAB } from './furnish.ts';
import { withFewColours } from './palette.ts';
import { logInAs } from './steps.ts';
import { wired } from './wired.ts';

/** No address: it is opened by keys. */
const PALETTE = '/luns';

const SCREENS: [string, string][] = [
  ['overview', '/?span=60'],
  ['topology', '/topology?lost=portal%3A10.0.1.1%3A3260'],
  ['luns', '/luns'],
  ['lun', '/luns/vm01?span=60'],
  ['lun-hosts', '/luns/vm01?show=hosts'],
  ['lun-settings', '/luns/vm01?show=settings'],
  ['lun-connect', '/luns/vm01?show=connect'],
  ['lun-set', '/luns/vm01?do=set'],
  ['hosts', '/hosts'],
  ['paths', '/hosts?view=paths'],
  ['refused', '/hosts?view=refused'],
  ['host', '/hosts/esx01'],
  ['host-set', '/hosts/esx01?do=set'],
  ['targets', '/targets'],
  ['target', '/targets/vms'],
  ['portals', '/targets?view=portals'],
  ['pools', '/pools'],
  ['integrity', '/integrity'],
  ['bench', '/bench'],
  ['bench-run', '/bench/1'],
  ['bench-start', '/bench?do=run&lun=vm01'],
  ['bench-compare', '/bench/compare?a=1&b=2'],
  ['lab', '/lab/BED'],
  ['tray', '/luns/vm01?span=60&tray=jobs'],
  ['jobs', '/jobs'],
  ['disks', '/disks'],
  ['disk', '/disks/ZC10003'],
  ['events', '/events'],
  ['audit', '/audit'],
  ['audit-entry', '/audit?kind=lun&result=done&entry=ENTRY'],
  ['alerts', '/alerts'],
  ['alert', '/alerts/ALERT'],
  ['alert-rules', '/alerts?show=rules'],
  ['alert-rule', '/alerts?show=rules&rule=pool_filling&do=set'],
  ['alert-silence', '/alerts/ALERT?do=mute'],
  ['receivers', '/alerts?show=receivers'],
  ['receiver-add', '/alerts?show=receivers&do=add'],
  ['account', '/settings/account'],
  ['users', '/settings/users'],
  ['tokens', '/settings/tokens'],
  ['certificate', '/settings/certificate'],
  ['node', '/settings/node'],
  ['earlier', '/settings/earlier'],
  ['about', '/settings/about'],
  ['palette', PALETTE],
  ['first-password', '/first-run?step=password'],
  ['first-portals', '/first-run?step=portals'],
  ['first-connect', '/first-run?step=connect'],
];
const SIZES: Record<number, number> = { 1280: 800, 1920: 1080, 390: 844 };
const WIDTHS = [1280, 1920, 390];
const THEMES = ['dark', 'light'] as const;

export interface Picture {
  name: string;
  width: number;
  theme: (typeof THEMES)[number];
}

/** Every screen at each width in both themes. */
export const EVERY = SCREENS.flatMap(([name]) => WIDTHS.flatMap((width) => THEMES.map((theme): Picture => ({ name, width, theme }))));
export const fileOf = ({ name, width, theme }: Picture) => `${name}-${width}-${theme}.png`;

export interface How {
  /** For the charts to fill. */
  waitMs: number;
  benchSeconds: number;
  /** Told of each screen what is there and what is read on it. */
  look?: (name: string, page: Page, text: string) => Promise<void>;
  /** Charts are drawn anew by the next figures at the latest. */
  drawnMs: number;
}

/** What stands on the node of the pictures. */
export async function furnished(daemon: Daemon): Promise<void> {
  furnish(daemon, true);
  daemon.run('lun', 'set', 'vm02', 'limit.iops=9000', 'shares=20');
  daemon.run('token', 'create', 'prometheus', '--role', 'viewer', '--days', '365');
  // Each of its NICs reaches both networks: the mistake that the map draws.
  daemon.run('host', 'create', 'lab', '--iqn', LAB);
  daemon.run('grant', 'create', 'lab', 'scratch', '--target', 'vms');
  const { lun_id } = JSON.parse(daemon.run('grant', 'show', 'lab:vms:scratch', '-o', 'json')) as { lun_id: number };
  daemon.load(LAB, 31, 2, 'vms', lun_id, '-o2', '-w0', '-g300', '--no-plan', '--policy', 'round-robin:1');
  await firing(daemon);
}

/** Two runs of the bench and a bed of the lab, where this daemon has them: the bed's number. */
async function measure(daemon: Daemon, seconds: number): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${daemon.token}` };
  const ask = async <T>(path: string, body?: unknown): Promise<T> => {
    const how = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return (await (await fetch(`${daemon.url}/api/v1/${path}`, { headers, ...how })).json()) as T;
  };
  for (const name of ['before', 'after']) {
    const load = { seconds, warm_up_seconds: 2, outstanding: 4, iops_max: 4000 };
    const { run } = await ask<{ run?: { id: number } }>('bench/runs', { name, memory: '64MiB', load });
    while (run && (await ask<{ state: string }>(`bench/runs/${run.id}`)).state === 'running') await new Promise((done) => setTimeout(done, 500));
  }
  const { topologies = [], may_start } = await ask<{ topologies?: { id: string }[]; may_start?: boolean }>('lab');
  if (!may_start) return '';
  return String((await ask<{ id?: number }>('lab/beds', { topology: topologies[0]?.id })).id ?? '');
}

/** Takes them, and says which files there are by then. */
export async function take(daemon: Daemon, dir: string, pictures: readonly Picture[], how: How): Promise<string[]> {
  mkdirSync(dir, { recursive: true });
  const rack = await wired(daemon);
  const browser = await Browser.open(rack.url, 'dark', 1280, 800, rack.at);
  const made: string[] = [];
  try {
    await logInAs(browser, 'anna', daemon.password);
    const entries = JSON.parse(daemon.run('audit', 'ls', '--object', 'lun:vm02', '-o', 'json')) as { id: number }[];
    const bed = await measure(daemon, how.benchSeconds);
    await browser.page.waitForTimeout(how.waitMs);
    const numbers = { ENTRY: String(entries.at(-1)?.id ?? 1), BED: bed, ALERT: await firing(daemon) };
    for (const [name, path] of SCREENS) {
      const wanted = pictures.filter((one) => one.name === name);
      if (wanted.length === 0) continue;
      await browser.go(Object.entries(numbers).reduce((text, [word, number]) => text.replace(word, number), path));
      await browser.settled();
      if (name === 'palette') await openPalette(browser);
      if (name === 'lun-set') await fillForm(browser);
      await how.look?.(name, browser.page, await read(browser.page));
      for (const one of wanted) {
        await browser.page.setViewportSize({ width: one.width, height: SIZES[one.width] ?? 800 });
        await browser.page.emulateMedia({ colorScheme: one.theme });
        await browser.page.waitForTimeout(how.drawnMs);
        writeFileSync(join(dir, fileOf(one)), withFewColours(await browser.page.screenshot()));
        made.push(fileOf(one));
      }
      if (name === 'palette') await browser.page.keyboard.press('Escape');
    }
  } finally {
    await browser.close();
    rack.close();
  }
  browser.well();
  return made;
}

/** All that a screen says: texts, also those that are folded, what stands in fields, and what a pointer is told. */
async function read(page: Page): Promise<string> {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll('body *')];
    const texts = all.filter((one) => one.children.length === 0 || one.matches('pre, p, td, dd, li')).map((one) => one.textContent);
    const fields = all.flatMap((one) => (one instanceof HTMLInputElement || one instanceof HTMLTextAreaElement ? [one.value] : []));
    return [...texts, ...fields, ...all.map((one) => one.getAttribute('title') ?? '')].join('\n');
  });
}

/** A form that says what it will do, with the same as a command line. */
async function fillForm({ page }: Browser): Promise<void> {
  await page.getByLabel('Operations a second at most', { exact: true }).fill('5000');
  await page.getByText('The same as a command line').click();
  await page.getByText('lun set vm01').first().waitFor();
  await page.getByRole('dialog').evaluate((dialog) => dialog.scrollTo(0, dialog.scrollHeight));
}

async function openPalette(browser: Browser): Promise<void> {
  await browser.page.keyboard.press('Control+k');
  await browser.page.getByRole('combobox').fill('vm');
  await browser.settled();
}
