// Every dialog of the page, by the component that has it, and how it is come to. `dialogs.test.ts` fails where a use of
// one in web/src is not here, and where a change has none.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabState, Orphan, Pool } from '../src/api/types.ts';
import type { Browser } from './browser.ts';
import type { Daemon } from './daemon.ts';
import { firing } from './furnish.ts';
import { withDisks, withRuns } from './made_up.ts';
import { logInAs, steps, until } from './steps.ts';

/** What only the daemon knows: numbers of what was made for these dialogs. */
interface Made {
  alert: string;
  job: string;
  session: string;
  token: string;
  silence: string;
  topology: string;
  generation: string;
}

interface Asked {
  browser: Browser;
  daemon: Daemon;
}

/** An address, or one with numbers; and what somebody does then until the dialog is what is meant. */
type Way = string | ((made: Made) => string) | { at: string; then: (asked: Asked) => Promise<void> };

/** No record says what it was: the form asks for its blocks. */
const ORPHAN: Orphan = { pool: 'default', naa: '6'.repeat(32), size_bytes: 64 << 20, problem: 'it has no record', has_checksums: false };

const own = (what: string) => `/settings/account?do=${what}`;
const alert = (what: string) => (made: Made) => `/alerts/${made.alert}?do=${what}`;
const lun = (what: string) => `/luns/vm01?do=${what}`;
const host = (what: string) => `/hosts/esx01?do=${what}`;
const target = (what: string) => `/targets/vms?do=${what}`;
const receiver = (what: string) => `/alerts?show=receivers&receiver=pager&do=${what}`;
const user = (what: string) => `/settings/users?do=${what}&user=eve`;
const grant = (what: string, name = 'esx01:vms:vm01') => `/luns/vm01?show=hosts&do=${what}&grant=${encodeURIComponent(name)}`;

/** Of whoever has logged in as an admin. */
const WAYS: Record<string, Way[]> = {
  'luns/CreateShare': ['/luns?do=create'],
  'luns/SetLun': [lun('set')],
  'luns/GrowLun': [lun('grow')],
  'luns/GrantLun': [lun('grant')],
  'luns/LunPage': [lun('scrub'), lun('delete'), lun('rename'), '/luns/gone?do=restore', '/luns/gone?do=purge'],
  'luns/SetGrant': [grant('change')],
  'luns/GrantTable': [grant('take')],
  'hosts/AddHost': ['/hosts?do=add'],
  'hosts/SetHost': [host('set')],
  'hosts/GrantHost': [host('grant')],
  'hosts/HostPage': [host('delete'), host('rename')],
  'hosts/Sessions': [({ session }) => `/hosts?view=sessions&do=end&session=${session}`],
  'hosts/Allow': ['/hosts?view=refused&do=allow&initiator=iqn.2026-01.org.debian%3Aunknown'],
  'hosts/Refused': ['/hosts?view=refused&do=end-maintenance&target=vms'],
  'parts/KeysHelp': ['/?keys=shown'],
  'parts/Restart': ['/settings/node?do=restart'],
  'targets/AddTarget': ['/targets?do=add'],
  'targets/SetTarget': [target('set')],
  'targets/TargetPage': [target('delete'), target('rename')],
  'integrity/ScrubRow': ['/integrity?do=scrub&lun=vm02', '/integrity?do=stop&lun=huge'],
  'jobs/JobPage': [({ job }) => `/jobs/${job}?do=cancel`],
  'Jobs': [({ job }) => `/jobs?do=stop&job=${job}`],
  'parts/Tray': [({ job }) => `/pools?tray=jobs&do=stop&job=${job}`],
  'disks/DiskPage': ['/disks/ZC10002?do=forget'],
  'pools/JournalCard': [{ at: '/pools?do=reopen&pool=default', then: journalNotOpen }],
  'pools/DiscardJournal': [{ at: '/pools?do=discard&pool=default', then: journalNotOpen }],
  'bench/StartRun': ['/bench?do=run'],
  'bench/RunPage': ['/bench/1?do=forget', '/bench/3?do=cancel'],
  'lab/Choose': [({ topology }) => `/lab?do=start&topology=${encodeURIComponent(topology)}`],
  'lab/BedPage': ['/lab/1?do=down'],
  'alerts/AlertForms': [alert('ack'), alert('unack'), alert('mute'), alert('unmute')],
  'alerts/AddSilence': ['/alerts?show=silences&do=silence'],
  'alerts/Silences': [({ silence }) => `/alerts?show=silences&do=end&silence=${silence}`],
  'alerts/SetRule': ['/alerts?show=rules&rule=host_single_path&do=set'],
  'alerts/Rules': ['/alerts?show=rules&rule=host_single_path&do=reset'],
  'alerts/SetReceiver': ['/alerts?show=receivers&do=add', receiver('set')],
  'alerts/Receivers': [receiver('test'), receiver('remove')],
  'settings/AddUser': ['/settings/users?do=add'],
  'settings/EditUser': [user('edit')],
  'settings/ResetPassword': [user('password')],
  'settings/Users': [user('remove')],
  'settings/Tokens': [({ token }) => `/settings/tokens?do=revoke&token=${token}`],
  'settings/MakeToken': ['/settings/tokens?do=make', { at: '/settings/tokens?do=make', then: tokenMade }],
  'settings/Earlier': [({ generation }) => `/settings/earlier?do=rollback&generation=${generation}`],
  'settings/AdoptLun': [{ at: `/settings/earlier?do=adopt&naa=${ORPHAN.naa}&pool=${ORPHAN.pool}`, then: orphanThere }],
  'settings/OwnPassword': [own('password')],
  'settings/Account': [own('end')],
  // What is not there any more; and all changes, also where somebody else was first.
  'parts/Fresh': [grant('change', 'nobody:vms:vm01')],
  'parts/ChangeDialog': [lun('set'), { at: lun('set'), then: changedMeanwhile }],
  'parts/Rename': [lun('rename')],
};

/** Before anybody has logged in; these are no address. */
const LOGINS: [what: string, open: (asked: Asked) => Promise<void>][] = [
  ['Log in', (asked) => toLogIn(asked)],
  ['Log in, refused', async (asked) => {
    await toLogIn(asked);
    const { field, dialog } = steps(() => asked.browser);
    await field('Password').fill('not the password of eve');
    await asked.browser.page.keyboard.press('Enter');
    await dialog().getByRole('alert').waitFor();
  }],
  ['Log in with a token', async (asked) => {
    await toLogIn(asked);
    await steps(() => asked.browser).button('With a token').click();
  }],
  ['A password of your own', async (asked) => {
    await toLogIn(asked);
    const { field, dialog } = steps(() => asked.browser);
    await field('User').fill('eve');
    await field('Password').fill(EVE);
    await asked.browser.page.keyboard.press('Enter');
    await dialog('A password of your own').waitFor();
  }],
];

const EVE = 'five words that eve knows';
export const LOGIN = 'parts/Login';

/** How often each component's dialogs are come to. */
export function reached(): Map<string, number> {
  return new Map([...Object.entries(WAYS).map(([name, ways]) => [name, ways.length] as const), [LOGIN, LOGINS.length]]);
}

/** Shows each of them, over a page where nobody has logged in yet. */
export async function everyDialog(browser: Browser, daemon: Daemon, look: (what: string, title: string) => Promise<void>): Promise<void> {
  const { page } = browser;
  const dialog = page.getByRole('dialog');
  const shown = async (what: string) => {
    await dialog.getByRole('button').first().waitFor().catch((error: unknown) => {
      throw new Error(`no dialog at ${what}`, { cause: error });
    });
    await browser.settled();
    await look(what, await dialog.getByRole('heading', { level: 2 }).innerText());
  };
  const made = await prepare(daemon);
  for (const [what, open] of LOGINS) {
    await open({ browser, daemon });
    await shown(what);
  }
  await page.context().clearCookies();
  await withDisks(page);
  await withRuns(page);
  await logInAs(browser, 'anna', daemon.password);
  for (const [component, ways] of Object.entries(WAYS)) {
    for (const way of ways) {
      const at = typeof way === 'string' ? way : typeof way === 'function' ? way(made) : way.at;
      await browser.go('/nothing-here');
      await dialog.waitFor({ state: 'detached' });
      await browser.go(at);
      if (typeof way === 'object') await way.then({ browser, daemon });
      await shown(`${component} ${at}`);
    }
  }
  await browser.go('/nothing-here');
  await dialog.waitFor({ state: 'detached' });
  daemon.run('scrub', 'stop', 'huge');
}

let times = 0;

/** A job that goes on, a session, a token, a silence, users, a LUN that was deleted: as often as it is asked for. */
async function prepare(daemon: Daemon): Promise<Made> {
  const read = <T>(...words: string[]) => JSON.parse(daemon.run(...words, '-o', 'json')) as T;
  times += 1;
  if (times === 1) {
    const secret = join(daemon.dir, 'eve');
    writeFileSync(secret, EVE);
    daemon.run('user', 'create', 'eve', '--role', 'operator', '--password-file', secret, '--must-change');
    daemon.run('lun', 'create', 'gone', '--size', '16M');
    daemon.run('lun', 'delete', 'gone', '--yes');
    daemon.run('token', 'create', 'backup', '--role', 'viewer');
    daemon.run('alert', 'silence', '--rule', 'lun_offline', '--hours', '4');
    // Holes of so much are read for many minutes.
    daemon.run('lun', 'create', 'huge', '--size', '8T');
  }
  daemon.run('scrub', 'start', 'huge');
  const signed = await fetch(`${daemon.url}/api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user: 'anna', password: daemon.password }) });
  if (!signed.ok) throw new Error(`anna's other login: ${signed.status}`);
  const sessions = () => read<{ id: number }[]>('session', 'ls');
  await until('somebody has a session', () => sessions().length > 0);
  const lab = read<LabState>('api', 'GET', '/api/v1/lab');
  return {
    alert: await firing(daemon),
    job: String(read<{ id: number; state: string }[]>('job', 'ls').find((job) => job.state === 'running')?.id),
    session: String(sessions()[0]?.id),
    token: read<{ id: string; name: string }[]>('token', 'ls').find((token) => token.name === 'backup')?.id ?? '',
    silence: String(read<{ id: number }[]>('alert', 'silences')[0]?.id),
    topology: lab.topologies[0]?.id ?? '',
    generation: String(read<{ generation: number }[]>('state', 'ls').at(-1)?.generation),
  };
}

async function toLogIn({ browser: { page } }: Asked): Promise<void> {
  await page.context().clearCookies();
  await page.goto('/');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

/** Its form has a dialog only where the journal is not open: the page is told so. */
async function journalNotOpen({ browser: { page } }: Asked): Promise<void> {
  await page.route('**/api/v1/pools', async (route) => {
    const pools = (await (await route.fetch()).json()) as Pool[];
    await route.fulfill({ json: pools.map((pool) => ({ ...pool, journal: { ...pool.journal, state: 'damaged', problem: 'no superblock of it can be read' } })) });
  });
  await page.route('**/pools/default/journal?dry_run=true', (route) => route.fulfill({ json: { losses: [{ lun: 'vm01', bytes: 4_194_304 }, { lun: 'vm02' }] } }));
  await page.reload();
  await page.getByRole('dialog').waitFor();
}

async function orphanThere({ browser: { page } }: Asked): Promise<void> {
  await page.route('**/api/v1/orphans', (route) => route.fulfill({ json: [ORPHAN] }));
  await page.reload();
  await page.getByRole('dialog').waitFor();
}

async function tokenMade({ browser }: Asked): Promise<void> {
  const { field, dialog } = steps(() => browser);
  await field('What it is for').fill(`prometheus-${times}`);
  await browser.page.keyboard.press('Enter');
  await dialog(`The token for prometheus-${times}`).waitFor();
}

async function changedMeanwhile({ browser, daemon }: Asked): Promise<void> {
  const { field, dialog } = steps(() => browser);
  await field('Operations a second at most').fill(String(8_000 + times));
  daemon.run('lun', 'set', 'vm01', `limit.iops=${7_000 + times}`);
  await dialog().getByRole('button', { name: 'Set', exact: true }).click();
  await dialog().getByText('Somebody else has changed it').waitFor();
}
