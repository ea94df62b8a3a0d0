// Presses Tab until it is where it began: what of a screen or a dialog the keyboard reaches, and where the focus is seen.

import type { Page } from 'playwright-core';

/** What can be used, and is seen. A closed `details` hides what is in it, also from Tab. */
const USABLE = 'a[href], button, input, select, textarea, summary, [tabindex]';
/** What gets the focus by scripts only, to be read from there: nothing is done with it. */
const BY_SCRIPT = 'main, h2';

export interface Walked {
  /** How much there is, and what of it Tab does not come to. */
  there: number;
  missed: string[];
  unseen: string[];
}

/** So often Tab is pressed before it is asked whether it has come round. */
const AT_A_TIME = 16;
const TAB = 9;

interface Seen {
  usable: Set<Element>;
  reached: Set<Element>;
  unseen: string[];
  round: boolean;
}

/** Presses Tab until it is where it began, on the page or in the dialog that is open. */
export async function walk(page: Page): Promise<Walked> {
  const there = await page.evaluate(([usable, byScript]) => {
    (document.activeElement as HTMLElement | null)?.blur();
    const within = document.querySelector('dialog[open]') ?? document;
    const all = [...within.querySelectorAll<HTMLElement>(usable)].filter((one) => {
      if (!one.checkVisibility({ visibilityProperty: true }) || one.matches(':disabled') || one.matches(byScript)) return false;
      // Of buttons that are one choice, Tab comes to the chosen one; of a toolbar to one of it, and arrow keys to the others.
      const isAnother = one.tabIndex < 0 && one.closest('[role=toolbar]')?.querySelector('[tabindex="0"]') != null;
      return !isAnother && !(one instanceof HTMLInputElement && one.type === 'radio' && !one.checked);
    });
    const seen: Seen = { usable: new Set(all), reached: new Set(), unseen: [], round: false };
    const look = ({ target }: Event) => {
      if (seen.round || !(target instanceof Element)) return;
      if (seen.reached.has(target)) {
        seen.round = true;
        return;
      }
      seen.reached.add(target);
      const style = getComputedStyle(target);
      const shown = style.outlineStyle !== 'none' || style.boxShadow !== 'none' || target.matches('input[role=combobox]');
      if (!shown) seen.unseen.push(target.outerHTML.slice(0, 120));
    };
    document.addEventListener('focusin', look, true);
    Object.assign(window, { seen, look });
    return all.length;
  }, [USABLE, BY_SCRIPT] as const);
  const cdp = await page.context().newCDPSession(page);
  // Held, and not waited for each time: an answer takes a frame.
  const press = (type: 'rawKeyDown' | 'keyUp') => cdp.send('Input.dispatchKeyEvent', { type, key: 'Tab', code: 'Tab', windowsVirtualKeyCode: TAB });
  // Between its end and its beginning the browser has its own.
  for (let left = there + 60, round = false; left > 0 && !round; left -= AT_A_TIME) {
    await Promise.all(Array.from({ length: Math.min(left, AT_A_TIME) }, () => press('rawKeyDown')));
    round = await page.evaluate(() => (window as unknown as { seen: Seen }).seen.round);
  }
  await press('keyUp');
  await cdp.detach();
  return page.evaluate((there) => {
    const { seen, look } = window as unknown as { seen: Seen; look: (event: Event) => void };
    document.removeEventListener('focusin', look, true);
    // What a new list has replaced meanwhile is not there any more.
    const missed = [...seen.usable].filter((one) => !seen.reached.has(one) && one.isConnected).map((one) => one.outerHTML.slice(0, 120));
    return { there, missed, unseen: seen.unseen };
  }, there);
}
