// A log that is shown from its newest entry on, page by page, while it goes on. Pure.

interface Entry {
  id: number;
}

/**
 * The newest page put onto what is there, the newest first. `isAll`: there is nothing older than the page.
 *
 * Where more came meanwhile than a page has, nobody knows what lies between: the page is left alone then, and what is
 * older is asked for anew. A list with a hole would say that nothing happened there.
 */
export function onto<One extends Entry>(page: One[], there: One[], isAll = false): One[] {
  const last = page.at(-1)?.id ?? 0;
  const first = there[0]?.id ?? 0;
  return isAll || last > first ? page : [...page, ...there.filter((one) => one.id < last)];
}

/** What is there with the page that was asked for behind `last`; as it is where it has another end by now. */
export function behind<One extends Entry>(there: One[], last: One, page: One[]): One[] {
  return there.at(-1)?.id === last.id ? [...there, ...page] : there;
}
