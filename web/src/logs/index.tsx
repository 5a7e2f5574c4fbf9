// SPDX-License-Identifier: Apache-2.0
import type { Navigation } from "../router";

export interface ViewProps {
  params: URLSearchParams; // of the address, docs in router.ts
  setParams: (next: URLSearchParams, how?: Navigation) => void;
}

export function LogsView(_: ViewProps) {
  return <div class="logs" />;
}

export function SearchView(_: ViewProps) {
  return <div class="search" />;
}
