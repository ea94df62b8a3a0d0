import { beforeEach, describe, expect, it } from 'vitest';
import { Keys } from './keys.ts';

const press = (key: string, timeStamp: number, ctrlKey = false) => ({ key, timeStamp, ctrlKey, metaKey: false, altKey: false, target: null, preventDefault() {} }) as unknown as KeyboardEvent;

let helped = 0;

describe('letters that are typed before the search is loaded', () => {
  beforeEach(() => {
    Object.assign(globalThis, { document: { querySelector: () => null }, Element: class {} });
  });

  it('are what it begins with, and go to no screen', () => {
    let asked = 0;
    const went: string[] = [];
    const keys = new Keys({ search: () => asked++, help: () => helped++, go: (path) => went.push(path) }, [{ path: '/luns', name: 'LUNs', key: 'l', icon: '' }]);
    keys.press(press('k', 0, true));
    for (const [i, key] of ['g', 'l', 'x', 'Backspace', 'Shift', '1'].entries()) keys.press(press(key, 10 + i));
    expect([asked, went, keys.take()]).toEqual([1, [], 'gl1']);
    keys.press(press('g', 100));
    keys.press(press('l', 101));
    expect(went).toEqual(['/luns']);
  });

  it('are not kept for a search that never comes', () => {
    const went: string[] = [];
    const keys = new Keys({ search: () => undefined, help: () => helped++, go: (path) => went.push(path) }, [{ path: '/luns', name: 'LUNs', key: 'l', icon: '' }]);
    keys.search(0);
    keys.press(press('g', 6_000));
    keys.press(press('l', 6_001));
    expect(went).toEqual(['/luns']);
  });

  it('show the keys by a question mark', () => {
    helped = 0;
    const keys = new Keys({ search: () => undefined, help: () => helped++, go: () => undefined }, []);
    keys.press(press('?', 0));
    expect(helped).toBe(1);
  });
});
