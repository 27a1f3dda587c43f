"""The tools of a session for frameworks of agents: one module for each framework, which has to be
installed. The models' calls go to the server as POST /v1/sessions/{session}/tools/{tool}."""
