// Draws /openapi.json with Scalar. Everything in Scalar that would ask another host is
// off: fonts, telemetry, the proxy for test requests, agents, cloud services. The page's
// Content-Security-Policy refuses such requests as well.
"use strict";

// The policy allows <style> elements that have the page's nonce. Scalar sets the nonce on
// one of its <style> elements only.
const nonce = document.querySelector("meta[property=csp-nonce]").content;
const createElement = document.createElement;
document.createElement = function (name, options) {
  const element = createElement.call(this, name, options);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
};

addEventListener("DOMContentLoaded", () => Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  servers: [{ url: location.origin }],
  authentication: { preferredSecurityScheme: "key" },
  persistAuth: false,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  defaultOpenFirstTag: false,
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  externalUrls: { dashboardUrl: "", registryUrl: "", proxyUrl: "", apiBaseUrl: "" },
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
}));
