// What people do on the page, in few words.

import type { Locator, Page } from 'playwright-core';
import type { Browser } from './browser.ts';
import type { Daemon } from './daemon.ts';
import { PATIENCE_MS } from './patience.ts';

export interface Steps {
  page: () => Page;
  button: (name: string | RegExp) => Locator;
  link: (name: string | RegExp) => Locator;
  field: (label: string) => Locator;
  /** Takes an option of the list with this label. */
  choose: (label: string, option: string) => Promise<unknown>;
  text: (what: string | RegExp) => Locator;
  /** Without a name: any. */
  dialog: (name?: string) => Locator;
  closed: () => Promise<void>;
  /** Types a name that was asked for, and presses the button of the dialog. */
  confirm: (name: string, verb: string) => Promise<void>;
}

export function steps(of: () => Browser): Steps {
  const page = () => of().page;
  const named = (name: string | RegExp) => ({ name, exact: typeof name === 'string' });
  const dialog = (name?: string) => page().getByRole('dialog', name === undefined ? {} : { name });
  const button = (name: string | RegExp) => page().getByRole('button', named(name));
  return {
    page,
    button,
    dialog,
    link: (name) => page().getByRole('link', named(name)),
    field: (label) => page().getByLabel(label, { exact: true }),
    text: (what) => page().getByText(what),
    // The name of a list has its value behind the label.
    choose: (label, option) => page().getByRole('combobox', { name: new RegExp(`^${label}`) }).selectOption(option),
    closed: () => dialog().waitFor({ state: 'detached' }),
    async confirm(name, verb) {
      await dialog().getByLabel(`Type ${name} to go on`).fill(name);
      await dialog().getByRole('button', { name: verb, exact: true }).click();
      await dialog().waitFor({ state: 'detached' }).catch(async (error: unknown) => {
        throw new Error(`the dialog stays, and says: ${await dialog().innerText()}`, { cause: error });
      });
    },
  };
}

/** Asks again and again until it is so; it says what was waited for where that never comes. */
export async function until(what: string, is: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
  const end = Date.now() + patienceMs;
  while (!(await is())) {
    if (Date.now() > end) throw new Error(`not so after ${patienceMs / 1000} s: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** A login with a token: the rights of an admin. */
export async function enter(browser: Browser, token: string): Promise<void> {
  const { page, button, field, closed } = steps(() => browser);
  await page().goto('/');
  // Where nothing may be read without a login, the page offers it as well.
  await button('Log in').first().click();
  await button('With a token').click();
  await field('Token').fill(token);
  await page().keyboard.press('Enter');
  await closed();
}

/** The same with a password, as people do. */
export async function logInAs(browser: Browser, user: string, password: string): Promise<void> {
  const { page, button, field, closed } = steps(() => browser);
  await page().goto('/');
  await button('Log in').click();
  await field('User').fill(user);
  await field('Password').fill(password);
  await page().keyboard.press('Enter');
  await closed();
}

/** Closes what was opened and ends what was started, also where that failed half-way: the runner would wait for it for ever. */
export async function end(browser: Browser | undefined, daemon: Daemon): Promise<void> {
  try {
    await browser?.close();
  } finally {
    await daemon.stop();
  }
  browser?.well();
}
